// Package dashboard is the web page of `ductor dashboard`. It shows the state and history of ductor to the owner, and
// changes nothing.
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

// Overview contains all data of the page. The JSON omits zero times.
type Overview struct {
	At            time.Time      `json:"at"`
	Version       string         `json:"version"`
	Health        []Part         `json:"health"`
	Conversations []Conversation `json:"conversations"`
	Agents        []Agent        `json:"agents"`
	Processes     []Process      `json:"processes"`
	Jobs          []Job          `json:"jobs"`
	Waiting       []Decision     `json:"waiting"` // approvals that wait for a decision
	Decisions     []Decision     `json:"decisions"`
	Days          []Day          `json:"days"` // consecutive days, oldest first
}

// Part is a part of ductor, such as its database, with its state.
type Part struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Conversation is a chat, or a topic in a chat.
type Conversation struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"` // title of the session that was used last
	Dir     string    `json:"dir"`
	Used    time.Time `json:"used,omitzero"`
	Running int       `json:"running"`
	Queued  int       `json:"queued"`
	Turns   int       `json:"turns"`
	Tokens  int64     `json:"tokens"`
	Cost    float64   `json:"cost"` // cost in US dollars
}

// Agent is an agent, and whether it is logged in.
type Agent struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Process is a running process of an agent.
type Process struct {
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Chat    string    `json:"chat"`
	Where   string    `json:"where"`
	State   string    `json:"state"`
	Started time.Time `json:"started,omitzero"`
	Memory  int64     `json:"memory"` // memory in bytes; 0 if unknown
}

// Job is a job with a summary of its runs.
type Job struct {
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Next   time.Time `json:"next,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Result string    `json:"result"` // outcome of the last run
	Failed bool      `json:"failed"`
	Runs   int       `json:"runs"`
	Cost   float64   `json:"cost"`
}

// Decision describes a request for permission that waits for a decision, a decision about a request, or an action of an
// agent that needed no permission.
type Decision struct {
	At    time.Time `json:"at,omitzero"`
	Chat  string    `json:"chat"`
	Agent string    `json:"agent"`
	What  string    `json:"what"`
	By    string    `json:"by"` // ID of the user who decided; may be empty
	Of    string    `json:"of"`
}

// Day contains the usage of one day.
type Day struct {
	Day    string  `json:"day"` // formatted as 2006-01-02
	Turns  int     `json:"turns"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// Site returns the page and its API. For each request of the page, the API calls the function current, which must
// return the current data.
func Site(current func(context.Context) (Overview, error), log *slog.Logger) web.Site {
	own, err := fs.Sub(page, "page")
	if err != nil {
		panic("dashboard: the page is not embedded: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/overview", func(w http.ResponseWriter, r *http.Request) {
		o, err := current(r.Context())
		if err != nil {
			log.Error("read the overview", "err", err)
			web.Fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		web.Answer(w, o)
	})
	return web.Site{Files: web.Pages(own), API: mux}
}
