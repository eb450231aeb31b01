// Package planted says which defect is planted into ductor. Only the patches beside it use it: no program has them but that of the
// command that checks the harness.
package planted

import "os"

// name is the defect of this process.
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether a defect is planted.
func On(defect string) bool { return name == defect }
