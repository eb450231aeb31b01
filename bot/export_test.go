package bot

import (
	"net/http"
	"slices"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// These are the parts of the fakes that tests outside of the package use.

type (
	JournalFake = journalFake
	DeskFake    = deskFake
)

// OnWire wraps an in-process transport so that it reports, like a connection, that the request was sent.
func OnWire(next http.RoundTripper) http.RoundTripper { return bottest.OnWire{Next: next} }

func NewJournalFake() *JournalFake { return newJournalFake() }

func NewDeskFake(j *JournalFake) *DeskFake {
	return &DeskFake{journal: j, status: orchestrator.Status{Agent: "claude", Model: "opus", Dir: "/home/u", Permission: cli.Ask}}
}

func (d *deskFake) Prompts() []orchestrator.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.prompts)
}

func (d *deskFake) SetRunning(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = on
}

func (d *deskFake) SetMenu(menu []cli.MenuEntry) { d.menu = menu }

func (d *deskFake) SetQueued(turns ...cli.TurnID) {
	d.queued = make(map[cli.TurnID]bool)
	for _, t := range turns {
		d.queued[t] = true
	}
}

func (j *journalFake) Said() []string { return j.said() }

// HasUnknown reports whether some notice has an unknown outcome.
func (j *journalFake) HasUnknown() bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return slices.ContainsFunc(j.Messages, func(m orchestrator.Message) bool { return m.State == orchestrator.Unknown })
}
