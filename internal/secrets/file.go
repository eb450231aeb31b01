package secrets

import (
	"regexp"
	"sync"
)

var fileName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)^(id_(rsa|dsa|ecdsa|ed25519)(_sk)?|credentials(\.(json|ya?ml|toml|db))?|secrets?\.(json|ya?ml|toml|env|txt)|.+\.(env|p12|pfx|ppk|jks|keystore|kdbx|gpg)|htpasswd|auth\.json|service[-_]account.*\.json|(.+[-_.])?kubeconfig(\.(ya?ml|json|conf))?|.+\.tfstate(\..*)?|.+\.tfvars(\.json)?|terraform\.rc)$`)
})

// IsFile reports whether files with this name usually contain passwords or keys.
func IsFile(name string) bool { return fileName().MatchString(name) }

var fileText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----` +
		`|(?m:^[ \t]*"?(client-key-data|current-context)"?[ \t]*:)` + // Kubernetes
		`|"terraform_version"[ \t]*:`) // Terraform state, which can contain passwords
})

// InText reports whether a text is a private key, a Kubernetes configuration with credentials, or a Terraform state.
func InText(text []byte) bool { return fileText().Match(text) }
