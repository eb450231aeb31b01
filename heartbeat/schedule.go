package heartbeat

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones also where the machine has none

	"github.com/robfig/cron/v3"
)

// The bounds of an interval, and of the time between two runs of a cron line.
const (
	leastInterval = time.Minute
	mostInterval  = 366 * 24 * time.Hour
	leastGap      = 10 * time.Second
)

// ErrNever is a schedule that no moment of the next years fits.
var ErrNever = errors.New("no such time comes any more")

// Plan knows the moments of a schedule.
type Plan interface {
	// Next is the first moment after t, in whole seconds; zero if there is none.
	Next(t time.Time) time.Time
}

// ParseSchedule reads a schedule:
//
//   - a cron line of five fields, or six with seconds first, or a word such as @daily. CRON_TZ=Zone before it
//     wins over loc. A line with fixed hours runs once when the clock is set back, and a moment that is left
//     out when it is set forward is made up for right after; a line for every hour goes by real hours.
//   - "every 90m": by real time, counted from anchor.
//   - "at 2026-11-22 08:00": once, with seconds if wanted.
func ParseSchedule(line string, loc *time.Location, anchor time.Time) (Plan, error) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	switch strings.ToLower(word) {
	case "every", "@every":
		return parseEvery(strings.TrimSpace(rest), anchor)
	case "at":
		return parseAt(strings.TrimSpace(rest), loc)
	}
	return parseCron(line, loc)
}

type every struct {
	step   time.Duration
	anchor time.Time
}

func parseEvery(text string, anchor time.Time) (Plan, error) {
	step, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no interval such as 90m or 2h", text)
	}
	if step < leastInterval || step > mostInterval || step%time.Second != 0 {
		return nil, fmt.Errorf("an interval is a minute to a year, in whole seconds, and not %s", step)
	}
	return every{step, anchor.Truncate(time.Second)}, nil
}

// Next goes by a fixed grid, so that a clock that is set back gives the same moments once more. The grid has no beginning:
// the clock may have been far ahead as it was laid.
func (e every) Next(t time.Time) time.Time {
	passed := t.Sub(e.anchor)
	steps := passed / e.step
	if passed < 0 && passed%e.step != 0 {
		steps--
	}
	return e.anchor.Add((steps + 1) * e.step)
}

type at time.Time

func parseAt(text string, loc *time.Location) (Plan, error) {
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04"} {
		if naive, err := time.Parse(layout, text); err == nil {
			return at(instantOf(naive, loc)), nil
		}
	}
	return nil, fmt.Errorf("%q is no moment such as 2026-11-22 08:00", text)
}

func (a at) Next(t time.Time) time.Time {
	if t.Before(time.Time(a)) {
		return time.Time(a)
	}
	return time.Time{}
}

// byWall goes by the clock on the wall, byHour by real hours.
type (
	byWall struct {
		spec cron.Schedule // in UTC
		loc  *time.Location
	}
	byHour struct{ spec *cron.SpecSchedule }
)

func parseCron(line string, loc *time.Location) (Plan, error) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		text, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(text, " ")
		zone, err := loadZone(name)
		if err != nil {
			return nil, err
		}
		loc, line = zone, strings.TrimSpace(rest)
		break
	}
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	if line == "" || strings.HasPrefix(line, "TZ=") || strings.HasPrefix(line, "CRON_TZ=") {
		return nil, errors.New("a cron line has five or six fields")
	}
	parsed, err := parser.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%q is no cron line: %w", line, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is no cron line", line)
	}
	const star = 1 << 63
	for _, bits := range []uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow} {
		if bits&^star == 0 {
			return nil, fmt.Errorf("%q is no cron line: a field of it is empty", line)
		}
	}
	if spec.Hour&star != 0 {
		spec.Location = loc
		return byHour{spec}, nil
	}
	spec.Location = time.UTC
	return byWall{spec, loc}, nil
}

func (p byHour) Next(t time.Time) time.Time { return p.spec.Next(t.In(p.spec.Location)) }

func (p byWall) Next(t time.Time) time.Time {
	for naive := naiveOf(t, p.loc); ; {
		naive = p.spec.Next(naive)
		if naive.IsZero() {
			return time.Time{}
		}
		if found := instantOf(naive, p.loc); found.After(t) {
			return found
		}
	}
}

// loadZone finds a zone by its IANA name; empty is none of them.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is no time zone such as Europe/Paris", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no time zone such as Europe/Paris", name)
	}
	return loc, nil
}

// checkPlan refuses what never comes, and what comes so often that no agent could keep up.
func checkPlan(p Plan, now time.Time) error {
	first := p.Next(now)
	if first.IsZero() {
		return ErrNever
	}
	for range 8 {
		second := p.Next(first)
		if second.IsZero() {
			return nil
		}
		if second.Sub(first) < leastGap {
			return fmt.Errorf("it would run %s after it ran; leave at least %s", second.Sub(first), leastGap)
		}
		first = second
	}
	return nil
}
