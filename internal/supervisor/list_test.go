package supervisor

import (
	"testing"
	"time"
)

// BenchmarkList is a look at thirty runs.
func BenchmarkList(b *testing.B) {
	root := openRoot(b, benchOptions(0))
	for range 30 {
		start(b, root, sh("sleep 600 & sleep 600")).Detach()
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		infos, err := root.List(b.Context())
		if err != nil || len(infos) != 30 {
			b.Fatal(len(infos), err)
		}
		took = append(took, time.Since(began))
		for _, info := range infos {
			if !info.Alive || info.Processes < 2 || info.Memory == 0 {
				b.Errorf("%+v", info)
			}
		}
	}
	reportMedian(b, took)
}
