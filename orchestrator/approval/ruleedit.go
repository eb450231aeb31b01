package approval

import (
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// editsBelow reports whether an approval does nothing but write files below its directory that are not hidden. Rules
// and the permission mode both use it.
func editsBelow(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	return p != nil && p.OnlyEdits() && !slices.ContainsFunc(p.Changes, func(c cli.FileChanged) bool {
		return c.Kind != cli.FileAdded && c.Kind != cli.FileUpdated || !cli.VisibleBelow(a.Dir, c.Path)
	})
}
