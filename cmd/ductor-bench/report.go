package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

type report struct {
	Machine    string         `json:"machine"`
	Rounds     int            `json:"rounds"`
	LoadBefore float64        `json:"load_before"`
	LoadAfter  float64        `json:"load_after"`
	Figures    []reportFigure `json:"figures"`
	Failures   []string       `json:"failures,omitempty"`
}

// reportFigure compares ductor with the minimal bot (Floor) in one figure. Ductor and Floor are the minimums of all
// rounds.
type reportFigure struct {
	Row          string    `json:"row"`
	What         string    `json:"what"`
	Unit         string    `json:"unit"`
	Target       float64   `json:"target,omitempty"`
	Ductor       float64   `json:"ductor,omitempty"`
	Floor        float64   `json:"floor,omitempty"`
	Ratio        float64   `json:"ratio,omitempty"`
	DuctorRounds []float64 `json:"ductor_rounds"`
	FloorRounds  []float64 `json:"floor_rounds,omitempty"`
}

func newReport(b *bench) *report {
	r := &report{Machine: machine(), Rounds: b.rounds, LoadBefore: load()}
	for _, row := range b.rows {
		for _, f := range row.figures {
			r.Figures = append(r.Figures, reportFigure{Row: row.name, What: f.what, Unit: f.unit, Target: f.target})
		}
	}
	return r
}

// add adds the figures of one row in one round.
func (r *report) add(row row, bot botName, m measurement) {
	if m.err != nil {
		r.Failures = append(r.Failures, fmt.Sprintf("%s of %s: %v", row.name, bot, m.err))
		return
	}
	begin := slices.IndexFunc(r.Figures, func(f reportFigure) bool { return f.Row == row.name })
	for i, v := range m.values {
		f := &r.Figures[begin+i]
		if bot == floorBot {
			f.FloorRounds = append(f.FloorRounds, v)
			f.Floor = slices.Min(f.FloorRounds)
		} else {
			f.DuctorRounds = append(f.DuctorRounds, v)
			f.Ductor = slices.Min(f.DuctorRounds)
		}
		if f.Floor > 0 {
			f.Ratio = f.Ductor / f.Floor
		}
	}
}

// failure returns an error that joins the failures of all rows.
func (r *report) failure() error {
	var all error
	for _, f := range r.Failures {
		all = errors.Join(all, errors.New(f))
	}
	return all
}

// busyLoad is the load average above which the figures are not reliable.
const busyLoad = 1

func (r *report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s; load %.2f before and %.2f after; the best of %d rounds\n", r.Machine, r.LoadBefore,
		r.LoadAfter, r.Rounds)
	if r.LoadBefore > busyLoad {
		fmt.Fprintf(out, "WARNING: the load was above %d before: the machine does other work, and the figures "+
			"are in doubt\n", busyLoad)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "row\t figure\t ductor\t worst round\t floor\t ratio\t target\t")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "%s\t %s\t %s\t %s\t %s\t %s\t %s\t\n", f.Row, f.What, f.amount(f.Ductor), f.amount(f.worst()),
			f.amount(f.Floor), f.times(), f.met())
	}
	return w.Flush()
}

func (r *report) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// amount formats a value with its unit, or as a dash if there is no value.
func (f reportFigure) amount(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, f.Unit)
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, f.Unit)
	}
	return fmt.Sprintf("%.0f %s", v, f.Unit)
}

// worst returns the maximum of ductor's values in all rounds, or zero.
func (f reportFigure) worst() float64 {
	if len(f.DuctorRounds) == 0 {
		return 0
	}
	return slices.Max(f.DuctorRounds)
}

func (f reportFigure) times() string {
	if f.Ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", f.Ratio)
}

func (f reportFigure) met() string {
	switch {
	case f.Target == 0:
		return ""
	case f.Ductor == 0:
		return fmt.Sprintf("<= %g %s", f.Target, f.Unit)
	case f.Ductor > f.Target:
		return fmt.Sprintf("<= %g %s MISSED", f.Target, f.Unit)
	}
	return fmt.Sprintf("<= %g %s met", f.Target, f.Unit)
}
