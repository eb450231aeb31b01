package main

import (
	"context"
	"time"
)

// row describes one benchmark, which runs with its own bot and measures several figures.
type row struct {
	name    string
	figures []figure
	floor   bool // whether the minimal bot of package floor can run this benchmark, too
	long    bool // runs only if the user asks for it, and only once
	extra   string
	measure func(context.Context, *setup) ([]float64, error)
}

// figure describes a value that a benchmark measures. The result table has one line for each figure, with the minimum
// of all rounds. row.measure returns one value for each element of row.figures, in the same order.
type figure struct {
	what   string
	unit   string
	target float64 // the value should be at most target; 0 means that there is no target
}

const (
	millis = "ms"
	mega   = "MB"
)

// sizes contains the sizes of the benchmarks.
type sizes struct {
	fresh  int // number of chats with one turn each
	chats  int // number of chats in the benchmarks of warmTurns, startTogether and streamTogether
	crowd  int // number of chats in the benchmark "crowd", which runs a turn in each of them at the same time
	stored int // number of turns in the database, for the benchmark "stored"
	turns  int // number of measured turns in each chat; an unmeasured turn that starts the agent comes first
	short  int // number of turns in the benchmarks "short" and "stored"
	many   int
	deltas int // pieces of the long answer, 20 bytes each
	stream int // pieces of a growing answer, 20 bytes each
	aborts int // number of answers that the benchmark aborts while their text grows
	pace   time.Duration
	settle time.Duration // pause after the bot has started
	idle   time.Duration
	busy   time.Duration // how long each answer takes in the benchmark "start"
	refill time.Duration // how long an answer grows before abortsOfText aborts it; uses up the chat's rate limit
}

func fullSizes() sizes {
	return sizes{
		fresh: 50, chats: 20, crowd: 100, stored: 1_000_000, turns: 3, short: 10, many: 200, deltas: 5000, stream: 200,
		aborts: 10,
		pace:   150 * time.Millisecond, settle: 700 * time.Millisecond, idle: 2 * time.Second, busy: 5 * time.Second,
		refill: 4 * time.Second,
	}
}

// Benchmarks that compare settings add these texts to ductor's configuration.
const (
	raisedRates = "[rate]\nprivate_per_second = 100\nprivate_burst = 100\noverall_per_second = 1000\n"
	oneShotMode = "mode = \"one-shot\"\n" // mode is a key of [agents.claude], the last section of the configuration
)

func rows() []row {
	warm := func(text, way string) []figure {
		return []figure{{what: text, unit: millis}, {what: way, unit: millis}}
	}
	return []row{
		{name: "cold", floor: true, measure: coldTurns,
			figures: []figure{{what: "first text, cold: p50", unit: millis}}},
		{name: "warm", floor: true, measure: warmTurns,
			figures: warm("first text, warm: p50", "agent's write to the API call: p50")},
		{name: "raised", floor: true, measure: warmTurns, extra: raisedRates,
			figures: warm("first text, warm, [rate] raised: p50",
				"agent's write to the API call, [rate] raised: p50")},
		{name: "start", floor: true, measure: startTogether, figures: []figure{
			{what: "20 chats start at once: first text p50", unit: millis},
			{what: "20 chats start at once: slowest first text", unit: millis, target: 300}}},
		{name: "stream", floor: true, measure: streamTogether, figures: []figure{
			{what: "20 chats stream at once: slowest first text", unit: millis, target: 300},
			{what: "20 chats stream at once: CPU, all processes", unit: millis},
			{what: "20 chats stream at once: CPU, bot alone", unit: millis},
			{what: "20 chats stream at once: PSS, all processes", unit: mega}}},
		{name: "crowd", floor: true, long: true, measure: streamOfMany, figures: []figure{
			{what: "100 chats stream at once: slowest first text", unit: millis},
			{what: "100 chats stream at once: CPU, all processes", unit: millis}}},
		{name: "stored", long: true, measure: storedTurns, figures: []figure{
			{what: "first text, warm, nothing stored: p50", unit: millis},
			{what: "first text, warm, a million turns stored: p50", unit: millis},
			{what: "first text after a restart, a million turns stored", unit: millis}}},
		{name: "long", measure: longAnswer, figures: []figure{
			{what: "100 kB at once: last word in the chat", unit: millis},
			{what: "100 kB at once: complete in the chat", unit: millis, target: 1000}}},
		{name: "short", floor: true, measure: shortTurns, figures: []figure{
			{what: "10 turns back to back: first text p50", unit: millis},
			{what: "10 turns back to back: slowest first text", unit: millis, target: 25},
			{what: "10 turns back to back: slowest but the first", unit: millis}}},
		{name: "many", floor: true, long: true, measure: manyTurns, figures: []figure{
			{what: "200 turns back to back: first text p50", unit: millis},
			{what: "200 turns back to back: slowest first text", unit: millis, target: 1050}}},
		{name: "abort", measure: aborts, figures: []figure{
			{what: "/abort: agent and tool dead: p50", unit: millis},
			{what: "/abort: user told: p50", unit: millis, target: 50},
			{what: "/abort: user told: slowest", unit: millis}}},
		{name: "abort-text", measure: abortsOfText, figures: []figure{
			{what: "/abort while text grows: agent dead: median of 10", unit: millis},
			{what: "/abort while text grows: user told: median of 10", unit: millis, target: 50},
			{what: "/abort while text grows: user told: slowest", unit: millis}}},
		{name: "approval", measure: approvals, figures: []figure{
			{what: "approval: agent's request to the chat: p50", unit: millis},
			{what: "approval: press to the agent: p50", unit: millis}}},
		{name: "idle", floor: true, measure: idleMemory, figures: []figure{
			{what: "idle: PSS, all processes", unit: mega}, {what: "idle: PSS, anonymous part", unit: mega}}},
		{name: "one-shot", measure: warmTurns, extra: oneShotMode,
			figures: warm("second turn, one-shot: first text p50",
				"agent's write to the API call, one-shot: p50")},
	}
}
