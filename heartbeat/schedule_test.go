package heartbeat_test

import (
	"errors"
	"testing"
	"time"

	"ductor/orchestrator"
)

// TestAddRefusesSchedules without a future time, or with times that are too close.
func TestAddRefusesSchedules(t *testing.T) {
	h := newRig(t, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for line, why := range map[string]string{
		"0 0 30 2 *":          "That day never comes. Change the schedule.",
		"at 2020-01-01 08:00": "That time has passed. Change the schedule.",
		"* * * * * *":         "The times are too close to each other. Leave at least 10 s.",
	} {
		_, err := h.Add(t.Context(), orchestrator.Job{Conversation: here, Prompt: "x",
			JobTiming: orchestrator.JobTiming{Schedule: line}})
		if bad := (*orchestrator.BadJob)(nil); !errors.As(err, &bad) || bad.Why != why {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}
