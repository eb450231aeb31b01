package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ductor/internal/sim/telegram"
)

// samples are measured times.
type samples []time.Duration

// at is the p-th percentile by nearest rank; zero of nothing.
func (s samples) at(p int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := (p*len(sorted) + 99) / 100
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func (s samples) String() string {
	return fmt.Sprintf("p10 %s, p50 %s, p95 %s", ms(s.at(10)), ms(s.at(50)), ms(s.at(95)))
}

// within is a figure of times whose median has a target.
func (s samples) within(what string, limit time.Duration) figure {
	return figure{what: what, measured: s.String(), target: "p50 <= " + ms(limit), met: len(s) > 0 && s.at(50) <= limit}
}

func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f ms", v)
	case v < 100:
		return fmt.Sprintf("%.1f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

func mb(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// lags says for each delta how long after it was written the chat showed its last character. A delta that
// was never shown is left out. Calls are in the order in which they were answered.
func lags(deltas []string, written []time.Time, calls []telegram.Call) (lag samples) {
	answer := strings.Join(deltas, "")
	end, next := 0, 0
	for i := range min(len(deltas), len(written)) {
		end += len(deltas[i])
		need := len(strings.TrimRight(answer[:end], " \n"))
		for next < len(calls) && sharedPrefix(calls[next].Params["text"], answer) < need {
			next++
		}
		if next == len(calls) {
			break
		}
		lag = append(lag, calls[next].Done.Sub(written[i]))
	}
	return lag
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// squeezed is text without white space, which messages may lose where they meet.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// everyText is what the bot's messages show, one after another.
func everyText(v telegram.View) string {
	var b strings.Builder
	for _, m := range v.FromBot() {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}

// whole says whether a message shows an answer that has ended: then it has a footer, such as "sonnet · 1.2s".
// A line about a tool looks similar, but begins with a mark.
func whole(text string) bool {
	text = strings.TrimSpace(text)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return strings.Contains(last, " · ") && strings.HasSuffix(last, "s") && last[0] < utf8.RuneSelf
}

func answers(v telegram.View) int {
	n := 0
	for _, m := range v.FromBot() {
		if whole(m.Text) {
			n++
		}
	}
	return n
}
