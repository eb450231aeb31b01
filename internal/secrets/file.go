package secrets

import (
	"regexp"
	"sync"
)

var fileName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(id_(rsa|dsa|ecdsa|ed25519)(_sk)?|credentials(\.(json|ya?ml|toml|db))?|secrets?\.(json|ya?ml|toml|env|txt)|.+\.(env|p12|pfx|ppk|jks|keystore|kdbx|gpg)|htpasswd|auth\.json|service[-_]account.*\.json|(.+[-_.])?kubeconfig(\.(ya?ml|json|conf))?|.+\.tfstate(\..*)?|.+\.tfvars(\.json)?|terraform\.rc)$`)
})

// IsFile reports whether a name is one of files of passwords and keys.
func IsFile(name string) bool { return fileName().MatchString(name) }

var fileText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----` +
		`|(?m:^[ \t]*"?(client-key-data|current-context)"?[ \t]*:)` + // of Kubernetes
		`|"terraform_version"[ \t]*:`) // the state has all values, passwords too
})

// InText reports whether a text is a private key, a configuration of Kubernetes with log-ins, or the state of Terraform.
func InText(text []byte) bool { return fileText().Match(text) }
