package k8s

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// The files of credentials inside a pod.
const (
	credentialsDir    = "/var/run/crawlbatch/aws"
	credentialsFile   = "credentials" // key in the Secret
	credentialsVolume = "credentials"
	tokenDir          = "/var/run/crawlbatch/token"
	tokenFile         = "token"
	tokenVolume       = "token"
	tokenSeconds      = 3600  // lifetime of a token in seconds; the kubelet renews tokens well before the end
	ownerAndGroup     = 0o440 // file mode for owner and group, because pods run with the group of their volumes
)

// storeCredentials returns the volumes that hold the store's credentials, their mounts, and the environment
// variables that tell AWS's default credential chain where the files are. The chain reads a token file again
// whenever it needs new keys, but it reads the file of a Secret only when the pod starts.
func storeCredentials(k *config.Kubernetes) (volumes []corev1.Volume, mounts []corev1.VolumeMount, env map[string]string) {
	switch {
	case k.CredentialsSecret != "":
		volumes = []corev1.Volume{{Name: credentialsVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: k.CredentialsSecret, DefaultMode: ptr(int32(ownerAndGroup)),
			Items: []corev1.KeyToPath{{Key: credentialsFile, Path: credentialsFile}},
		}}}}
		mounts = []corev1.VolumeMount{{Name: credentialsVolume, MountPath: credentialsDir, ReadOnly: true}}
		env = map[string]string{"AWS_SHARED_CREDENTIALS_FILE": path.Join(credentialsDir, credentialsFile)}
	case k.WebIdentityRole != "":
		volumes = []corev1.Volume{{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr(int32(ownerAndGroup)),
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: k.WebIdentityAudience, ExpirationSeconds: ptr(int64(tokenSeconds)), Path: tokenFile,
			}}},
		}}}}
		mounts = []corev1.VolumeMount{{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true}}
		env = map[string]string{"AWS_ROLE_ARN": k.WebIdentityRole, "AWS_WEB_IDENTITY_TOKEN_FILE": path.Join(tokenDir, tokenFile)}
	}
	return volumes, mounts, env
}
