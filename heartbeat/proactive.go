package heartbeat

import (
	"fmt"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// Proactive turns j into the job of a proactive prompt, for Scheduler.Sync. At each interval, the job asks an agent for
// news that the user should know. If there is no such news, the agent answers only with j.OKWord, and the chat does not
// show the answer. The job waits while its conversation has a turn. It does not make up for missed runs.
func Proactive(j orchestrator.Job, interval time.Duration) orchestrator.Job {
	j.Kind, j.Schedule = orchestrator.JobHeartbeat, "every "+schedule.FormatInterval(interval)
	j.Prompt = fmt.Sprintf("%s\n\nIf there is nothing that needs a person's attention, answer only: %s", j.Prompt,
		j.OKWord)
	j.Missed, j.Overlap = orchestrator.MissedSkip, orchestrator.OverlapSkip
	return j
}
