package secret

import "testing"

func TestValuesOfSecretParametersAreHidden(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example/s.xml":                                       "https://a.example/s.xml",
		"https://a.example/s.xml?from=1&to=2":                           "https://a.example/s.xml?from=1&to=2",
		"https://a.example/token=x/s.xml?page=1":                        "https://a.example/token=x/s.xml?page=1",
		"https://a.example/f?token=s3cret":                              "https://a.example/f?token=***",
		"https://a.example/f?page=2&API_Key=s3cret&x=1":                 "https://a.example/f?page=2&API_Key=***&x=1",
		"https://a.example/f?X-Amz-Date=1&X-Amz-Signature=s3cret":       "https://a.example/f?X-Amz-Date=1&X-Amz-Signature=***",
		"https://a.example/f?token=s3cret;s3cret=1?s3cret#s3cret":       "https://a.example/f?token=***",
		"https://a.example/f?a=1;sig=s3cret":                            "https://a.example/f?a=1;sig=***",
		"https://a.example/f?to%6Ben=s3cret":                            "https://a.example/f?to%6Ben=***",
		"https://a.example/f?token=s3cret%26s3cret=s3cret":              "https://a.example/f?token=***",
		"https://a.example/f?url=https://b.example/?token=s3cret":       "https://a.example/f?url=https://b.example/?token=***",
		"https://a.example/f?url=https%3A%2F%2Fb%2F%3Ftoken%3Ds3cret":   "https://a.example/f?url=***",
		"https://a.example/f?url=https%3A%2F%2Fb%2F%3Fa%26key%3Ds3cret": "https://a.example/f?url=***",
		"https://a.example/f?a%3Dtoken%3Ds3cret":                        "https://a.example/f?***",
		"https://a.example/f?a=1&to%6ben=s3cret%":                       "https://a.example/f?a=1&to%6ben=***",
		"https://a.example/f?%74oken=s3cret%zz":                         "https://a.example/f?%74oken=***",
		"https://a.example/f?url=https%253A%252F%252Fb%253Ftoken%253Ds": "https://a.example/f?url=***",
		"https://a.example/f?p=%25%2525":                                "https://a.example/f?p=%25%2525",
		"https://a.example/f?token":                                     "https://a.example/f?token",
		"https://a.example/f?token=":                                    "https://a.example/f?token=***",
		"https://a.example/f?p=100%&password=s3cret%":                   "https://a.example/f?p=100%&password=***",
		`not a URL: "https://a example/?sig=s3cret"`:                    `not a URL: "https://a example/?sig=***`,
		"":  "",
		"?": "?",
	} {
		got := Hide(in)
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if again := Hide(got); again != got {
			t.Errorf("%s: the second time %s", got, again)
		}
	}
}
