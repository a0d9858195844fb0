filedesc://old.arc 0.0.0.0 20261101100000 text/plain 76
1 0 An Archive
URL IP-address Archive-date Content-type Archive-length

http://lighthouse.example/ 192.0.2.7 20261101100000 text/html 307
HTTP/1.1 200 OK
Server: lamp/1.0
Date: Sun, 01 Nov 2026 10:00:00 GMT
Content-Type: text/html; charset=utf-8
Content-Length: 172

<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Too short</title></head>
<body><h1>Too short</h1>
<p>The light was first lit in 1834.</p>
</body></html>

