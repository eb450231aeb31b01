//go:build release

package environment

import "embed"

// embedded contains the program ductor-runner. The name of its file ends with its digest. scripts/release creates the
// file.
//
//go:embed program/ductor-runner-*
var embedded embed.FS
