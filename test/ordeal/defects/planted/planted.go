// Package planted tells ductor which defect is active. Only the patches beside it use it: no program but the one that
// tests the harness contains them.
package planted

import "os"

// name is the active defect of this process.
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether a defect is active.
func On(defect string) bool { return name == defect }
