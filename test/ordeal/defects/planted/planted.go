// Package planted selects the active bug among the bugs of command test/ordeal/defects. The command adds these bugs to
// ductor as patches. Only the patches import the package, so ductor itself does not contain it.
package planted

import "os"

// name is the bug that is active in this process, or "".
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether the bug with the given name is active.
func On(defect string) bool { return name == defect }
