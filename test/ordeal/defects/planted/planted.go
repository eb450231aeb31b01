// Package planted reports to ductor which defect is active. Only the patches in this directory use it, so only the
// program that tests the harness contains it.
package planted

import "os"

// name is the active defect of this process.
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether a defect is active.
func On(defect string) bool { return name == defect }
