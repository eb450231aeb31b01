package archtest

import (
	"go/ast"
	"testing"
)

// unsynced maps functions to the reason why they may rename a file before it is on the disk.
var unsynced = map[string]string{
	"cli.Keep":                    "each start compares the content and writes it anew",
	"cli/host.replace":            "homes hold copies of what the owner has",
	"docker/homes.putFile":        "each start of a container compares the time and copies it anew",
	"internal/app.WatchCrashes":   "a crash that nobody can read about is worth no promise",
	"internal/backup.moveAside":   "it is one step of place, which syncs the directory",
	"internal/store.FinishRescue": "it moves damaged files as they are, and syncs the directories",
}

// TestFilesAreSyncedBeforeTheyHaveTheirNames tests that files are flushed before a rename. Otherwise a power failure
// may leave an empty file with the new name.
func TestFilesAreSyncedBeforeTheyHaveTheirNames(t *testing.T) {
	used := map[string]bool{}
	for _, s := range parsedTree(t) {
		if !s.isProduction() {
			continue
		}
		for _, d := range s.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := s.pkg + "." + f.Name.Name
			switch renames, syncs := renamesAndSyncs(f); {
			case !renames:
			case unsynced[name] != "":
				used[name] = true
			case !syncs:
				t.Errorf("%s: %s renames a file that it did not sync", s.path, f.Name.Name)
			}
		}
	}
	for name := range unsynced {
		if !used[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// renamesAndSyncs reports whether a function renames a file, and whether it syncs one.
func renamesAndSyncs(f *ast.FuncDecl) (renames, syncs bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			renames = renames || fun.Sel.Name == "Rename" && len(call.Args) == 2
			syncs = syncs || fun.Sel.Name == "Sync"
		case *ast.Ident:
			syncs = syncs || fun.Name == "syncFile" || fun.Name == "syncAll"
		}
		return true
	})
	return renames, syncs
}
