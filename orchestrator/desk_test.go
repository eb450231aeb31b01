package orchestrator

import (
	"testing"
	"time"
)

func TestAPressPrecedesWhatCameAfterIt(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	press := Press{Updates: []int64{5}, Arrived: now}
	for name, c := range map[string]struct {
		updates []int64
		queued  time.Time
		want    bool
	}{
		"an earlier prompt":                      {[]int64{4}, now, false},
		"a later prompt":                         {[]int64{6}, now, true},
		"one from before Telegram counted anew":  {[]int64{6}, now.Add(-time.Hour), false},
		"a job":                                  {nil, now.Add(time.Hour), false},
		"a prompt of messages before and behind": {[]int64{4, 6}, now, false},
	} {
		if got := press.Precedes(Turn{Prompt: Prompt{Updates: c.updates}, Queued: c.queued}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
