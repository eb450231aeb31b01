package heartbeat

import (
	"fmt"
	"time"

	"ductor/orchestrator"
)

// DefaultOKWord is what an agent answers a proactive prompt with when there is nothing to say.
const DefaultOKWord = "HEARTBEAT_OK"

// Pulse is a proactive prompt: every so often an agent is asked whether there is anything a person should know.
// Nobody is disturbed by its silent word, and it never comes between a person and an agent that works.
type Pulse struct {
	Name         string // tells the pulses of the configuration apart
	Conversation orchestrator.ConversationID
	Person       orchestrator.PersonID
	Every        time.Duration
	Prompt       string
	OKWord       string // DefaultOKWord when empty
	Session      SessionMode
	Rights       orchestrator.Rights
	Zone         string
	Quiet        Quiet
}

// Job is the pulse for Scheduler.Sync. The prompt is told the silent word. What is missed is missed.
func (p Pulse) Job() Job {
	if p.OKWord == "" {
		p.OKWord = DefaultOKWord
	}
	return Job{
		Name: p.Name, Kind: KindPulse, Conversation: p.Conversation, Person: p.Person, Enabled: true,
		Prompt:   fmt.Sprintf("%s\n\nIf there is nothing that needs a person's attention, answer only: %s", p.Prompt, p.OKWord),
		Schedule: "every " + spanText(p.Every), Zone: p.Zone, Session: p.Session, Rights: p.Rights, Quiet: p.Quiet,
		Missed: MissedSkip, Overlap: OverlapSkip, OKWord: p.OKWord,
	}
}
