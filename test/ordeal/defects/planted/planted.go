// Package planted tells ductor which of the planted bugs is active. Only the patches of command defects import it, so
// ductor itself does not contain it.
package planted

import "os"

// name is the bug that is active in this process, or "".
var name = os.Getenv("ORDEAL_DEFECT")

// On reports whether a planted bug is active.
func On(defect string) bool { return name == defect }
