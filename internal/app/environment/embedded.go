//go:build release

package environment

import "embed"

// embedded contains the program ductor-runner. The name of the file contains the digest of the program. scripts/release
// creates the file.
//
//go:embed program/ductor-runner-*
var embedded embed.FS
