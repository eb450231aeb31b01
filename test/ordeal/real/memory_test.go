package real

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A group for the memory is a control group, and not an ordinary directory.
func TestAMemoryGroupIsAControlGroup(t *testing.T) {
	for i := range 10 { // the roots are tried in any order
		name := fmt.Sprintf("ordeal-test-%d-%d", os.Getpid(), i)
		group := newMemoryGroup(name, 96)
		removeMemoryGroup(name)
		if group == nil {
			t.Skip("this machine allows no control groups")
		}
		for root := range memoryRoots() {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				t.Errorf("%s is left in %s", name, root)
			}
		}
	}
}
