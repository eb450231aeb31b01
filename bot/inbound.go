package bot

import (
	"io"
	"log/slog"
	"time"

	"ductor/bot/approval"
	"ductor/bot/cron"
	"ductor/orchestrator"
)

// parts are what the inbound side is made of.
type parts struct {
	me         identity
	allow      Allow
	trigger    GroupTrigger
	abortWords []string
	receipts   Receipts
	windows    mergeWindows

	desk      Desk
	journal   orchestrator.Journal
	mail      mail
	voice     voice
	uploads   *uploads
	approvals *approval.Screen
	queue     *queueCards
	jobs      orchestrator.Jobs // nil: none are kept

	log    *slog.Logger
	now    func() time.Time
	random io.Reader // of nonces
}

// controlPatience is how long a command or a button may take; listing models asks the agents' CLIs.
const controlPatience = 45 * time.Second

// assemble wires the inbound side. Its lanes are to be stopped in the end.
func assemble(p parts) *router {
	closing := &closer{journal: p.journal, mail: p.mail, log: p.log}
	open := &menus{closer: closing, voice: p.voice, now: p.now, random: p.random, byID: make(map[string]menu)}
	restarts := &restarts{desk: p.desk, journal: p.journal, closer: closing, voice: p.voice}
	models := &wizard{desk: p.desk, closer: closing, menus: open}
	jobs := cron.New(cron.Options{Jobs: p.jobs, Journal: p.journal, Models: models, Now: p.now, Random: p.random, Log: p.log})
	receiving := &receiver{
		desk: p.desk, closer: closing, voice: p.voice, uploads: p.uploads, windows: p.windows,
		merged: &mergeMemory{}, receipts: p.receipts, approvals: p.approvals, restarts: restarts, jobs: jobs, log: p.log,
	}
	lanes := newLaneKeeper(p.log, controlPatience)
	lanes.content, lanes.broke = receiving.receive, closing.broke
	open.beside = lanes.beside
	return &router{
		me: p.me, trigger: p.trigger, abortWords: p.abortWords,
		lanes: lanes, closer: closing, log: p.log, turns: p.desk,
		commands: &commands{
			desk: p.desk, closer: closing, voice: p.voice, now: p.now, log: p.log,
			wizard:      models,
			permissions: &permissions{desk: p.desk, closer: closing, menus: open},
			roles:       &roles{desk: p.desk, closer: closing, menus: open},
			busy:        &busyModes{desk: p.desk, closer: closing, menus: open},
			jobs:        jobs,
		},
		callbacks: &callbacks{
			desk: p.desk, closer: closing, voice: p.voice, mail: p.mail, menus: open, log: p.log,
			approvals: p.approvals, restarts: restarts, queue: p.queue, jobs: jobs,
		},
		gate: &gate{
			allow: p.allow, log: p.log,
			strangers: &strangers{log: p.log, now: p.now, seen: make(map[stranger]time.Time)},
		},
		follower: newFollower(),
	}
}
