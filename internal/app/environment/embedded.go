//go:build release

package environment

import "embed"

// embedded contains ductor-runner, in a file whose name ends with its digest. scripts/release writes the file.
//
//go:embed program/ductor-runner-*
var embedded embed.FS
