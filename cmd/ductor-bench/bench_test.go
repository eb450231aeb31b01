package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/internal/testprogram"
)

// TestMain also makes the test binary the bench's agent and floor.
func TestMain(m *testing.M) {
	beChild()
	testprogram.Guard()
	os.Exit(m.Run())
}

// ductorProgram returns a built ductor: the shared one of a run of all tests, or a new one.
func ductorProgram(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("DUCTOR_TEST_PROGRAM"); program != "" {
		return program
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "ductor")
	if out, err := exec.Command("go", "build", "-o", dir, "ductor/cmd/ductor",
		"ductor/cmd/ductor-runner").CombinedOutput(); err != nil {
		t.Fatalf("build ductor and its runner: %v: %s", err, out)
	}
	return program
}

// TestEveryRowYieldsItsFigures measures every row once with minimal sizes, and checks that both bots yield its
// figures.
func TestEveryRowYieldsItsFigures(t *testing.T) {
	all, err := choose("", true)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{rows: all, rounds: 1, progress: t.Output(), sizes: sizes{
		fresh: 2, chats: 2, crowd: 3, stored: 10, turns: 1, short: 2, many: 3, deltas: 400, stream: 10, aborts: 1,
	}}
	if err := b.prepare(ductorProgram(t)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(b.scratch)
	r := b.run(t.Context())
	if err := r.failure(); err != nil {
		t.Fatal(err)
	}
	i := 0
	for _, row := range all {
		for _, want := range row.figures {
			got := r.Figures[i]
			i++
			if got.Row != row.name || got.What != want.what || got.Unit != want.unit || got.Target != want.target {
				t.Errorf("figure %d is %+v, want %q of %s", i, got, want.what, row.name)
			}
			if got.Ductor <= 0 || len(got.DuctorRounds) != 1 {
				t.Errorf("%s: ductor has %g of %d rounds", got.What, got.Ductor, len(got.DuctorRounds))
			}
			if row.floor != (got.Floor > 0) || row.floor != (got.Ratio > 0) {
				t.Errorf("%s: the floor has %g, ratio %g", got.What, got.Floor, got.Ratio)
			}
		}
	}
	if i != len(r.Figures) {
		t.Errorf("%d figures, want %d", len(r.Figures), i)
	}
	left, err := filepath.Glob(filepath.Join(b.scratch, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("only ductor and its runner may be left in the scratch directory: %q, %v", left, err)
	}
}

func TestRowsAreChosen(t *testing.T) {
	count := func(only string, long bool) int {
		chosen, err := choose(only, long)
		if err != nil {
			t.Fatal(err)
		}
		return len(chosen)
	}
	all := len(rows())
	if got := count("", true); got != all {
		t.Errorf("%d rows with the long ones, want %d", got, all)
	}
	if got := count("", false); got != all-3 {
		t.Errorf("%d rows without crowd, stored and many, want %d", got, all-3)
	}
	if got := count("many", false); got != 1 {
		t.Errorf("a long row named alone: %d rows", got)
	}
	if _, err := choose("cool", false); err == nil || !strings.Contains(err.Error(), "cold, warm") {
		t.Errorf("a row that does not exist: %v", err)
	}
}

func TestTheBestRoundCounts(t *testing.T) {
	one := row{name: "cold", figures: []figure{{"first text", millis, 20}, {"memory", mega, 0}}}
	r := newReport(&bench{rows: []row{one}, rounds: 2})
	r.LoadBefore = 1.5
	r.add(one, ductorBot, measurement{values: []float64{30, 120}})
	r.add(one, floorBot, measurement{values: []float64{10, 8}})
	r.add(one, ductorBot, measurement{values: []float64{25, 140}})
	r.add(one, floorBot, measurement{err: errors.New("it ended")})
	var table, object bytes.Buffer
	if err := errors.Join(r.table(&table), r.json(&object)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"WARNING: the load", "| 25.0 ms | 30.0 ms     | 10.0 ms | 2.5   | <= 20 ms MISSED |",
		"| 120 MB  | 140 MB      | 8.00 MB | 15.0  |"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	var back report
	if err := json.Unmarshal(object.Bytes(), &back); err != nil ||
		!slices.Equal(back.Figures[0].DuctorRounds, []float64{30, 25}) {
		t.Errorf("JSON has %+v, %v", back.Figures, err)
	}
	if err := r.failure(); err == nil || !strings.Contains(err.Error(), "cold of floor: it ended") {
		t.Errorf("the failure is %v", err)
	}
}

func TestPercentiles(t *testing.T) {
	var s samples
	for i := range 100 {
		s = append(s, time.Duration(100-i)*time.Millisecond)
	}
	for p, want := range map[int]float64{0: 1, 1: 1, 50: 50, 95: 95, 100: 100} {
		if got := s.at(p); got != want {
			t.Errorf("p%d of 1..100 ms is %g", p, got)
		}
	}
	if !math.IsNaN(samples(nil).median()) {
		t.Error("no samples have a median")
	}
}

func TestWhatCountsAsFirstTextAndAsEnd(t *testing.T) {
	const footer = "word0001\n\nsonnet · 0.1s"
	for _, c := range []struct {
		bot          botName
		method, text string
		first, end   bool
	}{
		{ductorBot, "sendMessage", "word0001", true, false},
		{ductorBot, "sendMessage", footer, true, true},
		{ductorBot, "sendMessage", "starting Claude…", false, false},
		{ductorBot, "sendMessage", `Queued: [[text "word0001"]]`, false, false},
		{ductorBot, "editMessageText", "word0001\n\n✓ Run true · 0.1s", true, false},
		{ductorBot, "editMessageText", "word0002\n\nsonnet · 0.1s", false, false},
		{floorBot, "sendMessage", "word0001", true, false},
		{floorBot, "editMessageText", "word0001.", true, true},
	} {
		s := &setup{bot: c.bot}
		call := telegram.Call{Method: c.method, Params: map[string]string{"text": c.text}}
		if got := shows("word0001")(call); got != c.first {
			t.Errorf("%s: %s %q shows the first text: %t", c.bot, c.method, c.text, got)
		}
		if got := s.ends("word0001")(call); got != c.end {
			t.Errorf("%s: %s %q shows the end: %t", c.bot, c.method, c.text, got)
		}
	}
}

// TestABotThatEndsFailsItsRow tests that a row fails at once if its bot ends, and that the error contains the bot's
// log.
func TestABotThatEndsFailsItsRow(t *testing.T) {
	b := &bench{rounds: 1, progress: t.Output(), sizes: sizes{fresh: 1}}
	program := filepath.Join(t.TempDir(), "ductor")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho I give up >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.prepare(program); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(b.scratch)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := b.measure(ctx, rows()[0], ductorBot)
	if m.err == nil || !strings.Contains(m.err.Error(), "I give up") || ctx.Err() != nil {
		t.Errorf("the row says %v", m.err)
	}
}
