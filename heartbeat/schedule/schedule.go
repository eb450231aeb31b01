package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones, in case the machine has none

	"github.com/robfig/cron/v3"

	"ductor/lang"
)

// Limits of schedules. minInterval and maxInterval apply to "every", and MinGap is the minimum time between two runs of
// a cron line.
const (
	minInterval = time.Minute
	maxInterval = 366 * 24 * time.Hour
	MinGap      = 10 * time.Second
)

// All errors of this package contain a *lang.Error, because users read them in the language of their chat.

// ErrNever means that a schedule has no time in the future.
var ErrNever error = &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.never") }}

// ErrPassed means that a schedule has only a single time, and that this time has passed. ErrPassed wraps ErrNever.
var ErrPassed error = &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.passed") }, Kind: ErrNever}

var (
	// errInterval means that an interval is too short or too long, or has fractions of seconds.
	errInterval = &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.interval") }}
	// errTooOften means that a cron line has times that are too close to each other.
	errTooOften = &lang.Error{Explain: func(p lang.Printer) string {
		return p.Text("job.too-often", p.Span(MinGap))
	}}
)

func noCron(line string) error {
	return &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.no-cron", line) }}
}

// Schedule computes the times at which something is due.
type Schedule interface {
	// Next returns the first time after t, in whole seconds. It returns zero if no such time exists.
	Next(t time.Time) time.Time
}

// Parse parses a schedule in these forms:
//
//   - A cron line with five fields, or with six if the first field contains seconds, or a word such as @daily. If
//     CRON_TZ=Zone precedes the line, Zone replaces loc.
//   - "every 90m": an interval in elapsed time, counted from anchor.
//   - "at 2026-11-22 08:00": a single time. Seconds are optional.
//   - "at 2026-11-22T08:00:00+01:00": a single time that does not depend on loc.
//
// A cron line with fixed hours follows the local time of day. If daylight saving time repeats a time, the line runs
// only once at that time. If daylight saving time skips a time, the line runs right after the change. A cron line for
// every hour counts elapsed hours.
func Parse(line string, loc *time.Location, anchor time.Time) (Schedule, error) {
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

func parseEvery(text string, anchor time.Time) (Schedule, error) {
	step, err := time.ParseDuration(text)
	if err != nil {
		return nil, &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.no-interval", text) }}
	}
	if step < minInterval || step > maxInterval || step%time.Second != 0 {
		return nil, errInterval
	}
	return every{step, anchor.Truncate(time.Second)}, nil
}

// Next counts intervals from the anchor. So if the clock is set back, Next returns the same times again. It also
// accepts a time before the anchor, because the clock may have been wrong when the anchor was set.
func (e every) Next(t time.Time) time.Time {
	passed := t.Sub(e.anchor)
	steps := passed / e.step
	if passed < 0 && passed%e.step != 0 {
		steps--
	}
	return e.anchor.Add((steps + 1) * e.step)
}

type at time.Time

func parseAt(text string, loc *time.Location) (Schedule, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return at(t), nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04"} {
		if local, err := time.Parse(layout, text); err == nil {
			return at(instant(local, loc)), nil
		}
	}
	return nil, &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.no-moment", text) }}
}

func (a at) Next(t time.Time) time.Time {
	if t.Before(time.Time(a)) {
		return time.Time(a)
	}
	return time.Time{}
}

// byWall is a cron line with fixed hours, which follows the local time of day. byHour is a cron line for every hour,
// which counts elapsed hours.
type (
	byWall struct {
		spec cron.Schedule // computes local times, which it treats as UTC; see wallTime
		loc  *time.Location
	}
	byHour struct{ spec *cron.SpecSchedule }
)

// cutZone cuts the time zone from the beginning of a cron line. It returns false if the line has no time zone.
func cutZone(line string) (rest, zone string, ok bool) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if text, ok := strings.CutPrefix(line, prefix); ok {
			zone, rest, _ := strings.Cut(text, " ")
			return strings.TrimSpace(rest), zone, true
		}
	}
	return line, "", false
}

func parseCron(line string, loc *time.Location) (Schedule, error) {
	if rest, name, ok := cutZone(line); ok {
		zone, err := Zone(name)
		if err != nil {
			return nil, err
		}
		loc, line = zone, rest
	}
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
		cron.Descriptor)
	if _, _, again := cutZone(line); again || line == "" {
		return nil, noCron(line)
	}
	parsed, err := parser.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", noCron(line), err) // users see noCron; the log also shows err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, noCron(line)
	}
	const star = 1 << 63
	for _, bits := range []uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow} {
		if bits&^star == 0 {
			return nil, noCron(line)
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
	for local := wallTime(t, p.loc); ; {
		local = p.spec.Next(local)
		if local.IsZero() {
			return time.Time{}
		}
		if found := instant(local, p.loc); found.After(t) {
			return found
		}
	}
}

// Once reports whether a schedule has only one time.
func Once(s Schedule) bool {
	_, once := s.(at)
	return once
}

// Zone returns the time zone with an IANA name. It returns an error if name is empty.
func Zone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.no-zone", name) }}
	}
	return loc, nil
}

// Check returns an error if a schedule has no time after now, or if its times are too close to each other.
func Check(s Schedule, now time.Time) error {
	last := s.Next(now)
	if last.IsZero() && Once(s) {
		return ErrPassed
	}
	if last.IsZero() {
		return ErrNever
	}
	for range 8 {
		next := s.Next(last)
		if !next.IsZero() && next.Sub(last) < MinGap {
			return errTooOften
		}
		if last = next; next.IsZero() {
			break
		}
	}
	return nil
}

// A wall time is the local time in a zone, represented as if it were UTC. Unlike local times, wall times have no gaps
// and repetitions. So schedules are computed with wall times, which are then converted to instants.

// wallTime returns the wall time at t.
func wallTime(t time.Time, loc *time.Location) time.Time {
	l := t.In(loc)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// instant returns the time at which clocks in a zone show a wall time. If they show it twice, it returns the first
// time. If they skip it, it returns the end of the gap.
func instant(wall time.Time, loc *time.Location) time.Time {
	before, after := offsetAt(wall.Add(-24*time.Hour), loc), offsetAt(wall.Add(24*time.Hour), loc)
	var found time.Time
	for _, offset := range []time.Duration{before, after} {
		t := wall.Add(-offset)
		if offsetAt(t, loc) == offset && (found.IsZero() || t.Before(found)) {
			found = t
		}
	}
	if found.IsZero() {
		found, _ = wall.Add(-before).In(loc).ZoneBounds()
	}
	return found.In(loc)
}

func offsetAt(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}
