// Package dashboard is the page of `ductor dashboard`: it shows the owner what a ductor does and did, and changes nothing.
package dashboard

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"ductor/web"
)

//go:embed page
var page embed.FS

// Overview is all that the page shows. Times that are zero are left out of it.
type Overview struct {
	At            time.Time      `json:"at"`
	Version       string         `json:"version"`
	Health        []Part         `json:"health"`
	Conversations []Conversation `json:"conversations"`
	Agents        []Agent        `json:"agents"`
	Processes     []Process      `json:"processes"`
	Jobs          []Job          `json:"jobs"`
	Waiting       []Decision     `json:"waiting"` // approvals that wait
	Decisions     []Decision     `json:"decisions"`
	Days          []Day          `json:"days"` // the oldest first, without gaps
}

// Part is a part of ductor and how it is.
type Part struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Conversation is a chat, or a topic of one.
type Conversation struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"` // of the session that was used last
	Dir     string    `json:"dir"`
	Used    time.Time `json:"used,omitzero"`
	Running int       `json:"running"`
	Queued  int       `json:"queued"`
	Turns   int       `json:"turns"`
	Tokens  int64     `json:"tokens"`
	Cost    float64   `json:"cost"` // US dollars
}

// Agent is an agent and its log-in.
type Agent struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Process is an agent that runs.
type Process struct {
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Chat    string    `json:"chat"`
	Where   string    `json:"where"`
	State   string    `json:"state"`
	Started time.Time `json:"started,omitzero"`
	Memory  int64     `json:"memory"` // bytes; 0 is unknown
}

// Job is a job and its runs.
type Job struct {
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Next   time.Time `json:"next,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Result string    `json:"result"` // of the last run
	Failed bool      `json:"failed"`
	Runs   int       `json:"runs"`
	Cost   float64   `json:"cost"`
}

// Decision is an approval, or something that ran without asking.
type Decision struct {
	At    time.Time `json:"at,omitzero"`
	Chat  string    `json:"chat"`
	Agent string    `json:"agent"`
	What  string    `json:"what"`
	By    string    `json:"by"` // a user's id; empty for none
	Of    string    `json:"of"`
}

// Day is what turns of one day used.
type Day struct {
	Day    string  `json:"day"` // 2006-01-02
	Turns  int     `json:"turns"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// Site is the page and what it asks for.
func Site(look func(context.Context) (Overview, error), log *slog.Logger) web.Site {
	own, err := fs.Sub(page, "page")
	if err != nil {
		panic("dashboard: the page is not embedded: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/overview", func(w http.ResponseWriter, r *http.Request) {
		o, err := look(r.Context())
		if err != nil {
			log.Error("read what ductor does", "err", err)
			web.Fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		web.Answer(w, o)
	})
	return web.Site{Files: web.Pages(own), API: mux}
}
