package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli/host"
	"ductor/heartbeat"
)

func TestHomesOfSessionsAreForgottenByAgeAndSize(t *testing.T) {
	now := time.Now()
	hour := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		cut  heartbeat.Cutoff
		gone int64
		left int64 // bytes
	}{
		"no limit":                     {heartbeat.Cutoff{}, 0, 100},
		"by age":                       {heartbeat.Cutoff{Before: hour(50)}, 2, 70},
		"by size":                      {heartbeat.Cutoff{Bytes: 45}, 3, 40},
		"what may be in use is spared": {heartbeat.Cutoff{Before: now, Bytes: 1}, 3, 40},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			homes, err := host.OpenHomes(host.HomesOptions{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer homes.Close()
			for session, used := range map[string]time.Time{"a": hour(100), "b": hour(80), "c": hour(10),
				"d": hour(1)} {
				home, err := homes.Home(t.Context(), session)
				size := map[string]int{"a": 10, "b": 20, "c": 30, "d": 40}[session]
				err = errors.Join(err, os.WriteFile(filepath.Join(home, "file"), make([]byte, size), 0o600),
					os.Chtimes(home, used, used))
				if err != nil {
					t.Fatal(err)
				}
			}
			e := &Environments{Homes: homes, Sandboxes: &Sandboxes{}}
			dataset := heartbeat.Items{List: e.keptHomes, InUse: func() time.Time { return hour(2) }}
			planned, err := dataset.Plan(t.Context(), c.cut)
			if err != nil {
				t.Fatal(err)
			}
			done, err := dataset.Trim(t.Context(), c.cut)
			if err != nil || done != planned || done.Items != c.gone || done.LeftBytes != c.left {
				t.Errorf("planned %+v, done %+v, %v", planned, done, err)
			}
			if left, err := homes.List(context.Background()); err != nil || int64(len(left)) != 4-c.gone {
				t.Errorf("%d homes are left, %v", len(left), err)
			}
		})
	}
}
