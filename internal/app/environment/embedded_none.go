//go:build !release

package environment

import "embed"

// embedded is empty: only a release has ductor-runner in it.
var embedded embed.FS
