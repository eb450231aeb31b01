//go:build release

package environment

import "embed"

// embedded contains the program ductor-runner. The digest of the program is a part of its file name. scripts/release
// creates the file.
//
//go:embed program/ductor-runner-*
var embedded embed.FS
