//go:build !release

package environment

import "embed"

// embedded is empty, because only releases contain ductor-runner.
var embedded embed.FS
