package heartbeat_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/heartbeat"
)

// TestForgettingByAgeAndSize: the dry run predicts the round, the oldest files go first, and nothing outside of the
// directory changes.
func TestForgettingByAgeAndSize(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		name   string
		limits heartbeat.Limits
		left   []string
	}{
		{"no limits", heartbeat.Limits{}, []string{"a/1", "a/2", "b/3", "b/4"}},
		{"by age", heartbeat.Limits{Age: 35 * h}, []string{"a/1", "b/3", "b/4"}},
		{"by size", heartbeat.Limits{Bytes: 250}, []string{"b/3", "b/4"}},
		{"by both", heartbeat.Limits{Age: 15 * h, Bytes: 1000}, []string{"b/4"}},
		{"all", heartbeat.Limits{Age: time.Minute}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
			for name, age := range map[string]time.Duration{"a/1": 30 * h, "a/2": 40 * h, "b/3": 20 * h,
				"b/4": 10 * h} {
				write(t, filepath.Join(dir, name), friday.Add(-age))
			}
			write(t, outside, friday.Add(-1000*h))
			if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			r := heartbeat.Retention{
				Rules: func() []heartbeat.RetentionRule {
					return []heartbeat.RetentionRule{{Name: "uploads", Dataset: heartbeat.Files(dir), Limits: c.limits}}
				},
				Now: func() time.Time { return friday }, Logger: slog.New(slog.DiscardHandler),
			}
			plan := r.DryRun(t.Context())
			if got := files(t, dir); len(got) != 4 {
				t.Errorf("the dry run left %v", got)
			}
			did := r.Trim(t.Context())
			if diff := cmp.Diff(plan, did); diff != "" {
				t.Errorf("the round did not do what the dry run said: %s", diff)
			}
			if diff := cmp.Diff(c.left, files(t, dir)); diff != "" {
				t.Error(diff)
			}
			n := int64(len(c.left))
			want := heartbeat.TrimStats{Items: 4 - n, Bytes: 100 * (4 - n), LeftItems: n, LeftBytes: 100 * n}
			if did[0].TrimStats != want || did[0].Err != nil {
				t.Errorf("it says %+v, %v", did[0].TrimStats, did[0].Err)
			}
			if _, err := os.Stat(outside); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); (err == nil) != slices.Contains(c.left, "a/1") {
				t.Errorf("the directory a: %v", err)
			}
		})
	}
	gone := heartbeat.Files(filepath.Join(t.TempDir(), "none"))
	if got, err := gone.Trim(t.Context(), heartbeat.Cutoff{Bytes: 1}); err != nil || got != (heartbeat.TrimStats{}) {
		t.Errorf("a directory that is not there: %+v, %v", got, err)
	}
}

func write(t *testing.T, path string, at time.Time) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, 100), 0o600),
		os.Chtimes(path, at, at))
	if err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, rel)
	}
	return names
}
