package runner

import (
	"testing"
	"testing/synctest"
	"time"
)

// Small pieces are read in batches. Output that fills the reader's buffer, however small, is read at full speed.
func TestBulkOutputIsNotDelayed(t *testing.T) {
	for name, tc := range map[string]struct {
		n, most int
		paced   bool
	}{
		"words":                  {n: 100, most: 16 << 10, paced: true},
		"a small buffer is full": {n: 16 << 10, most: 16 << 10},
		"big reads":              {n: paceBig, most: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pace{urgent: make(chan struct{}, 1)}
				p.on.Store(true)
				began := time.Now()
				for range 200 {
					p.wait(nil)
					p.read(tc.n, tc.most)
				}
				if took := time.Since(began); tc.paced != (took > time.Second) || !tc.paced && took > 0 {
					t.Errorf("200 reads took %s", took)
				}
			})
		})
	}
}
