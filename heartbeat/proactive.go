package heartbeat

import (
	"fmt"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// Proactive turns a job into a proactive prompt for Scheduler.Sync. Such a job asks an agent at an interval whether the
// user should know anything. The chat does not show the answer if it is only the OK word. The job waits while a turn
// uses its session, and skips missed runs.
func Proactive(j orchestrator.Job, interval time.Duration) orchestrator.Job {
	j.Kind, j.Schedule = orchestrator.JobHeartbeat, "every "+schedule.FormatInterval(interval)
	j.Prompt = fmt.Sprintf("%s\n\nIf there is nothing that needs a person's attention, answer only: %s", j.Prompt,
		j.OKWord)
	j.Missed, j.Overlap = orchestrator.MissedSkip, orchestrator.OverlapSkip
	return j
}
