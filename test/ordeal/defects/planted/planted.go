// Package planted selects one of the bugs that the program test/ordeal/defects adds to ductor. Only the patches with
// these bugs import the package, so ductor itself does not contain it.
package planted

import "os"

// name is the bug that is active in this process, or "".
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether the bug with the given name is active.
func On(defect string) bool { return name == defect }
