package main

import (
	"context"
	"fmt"
	"time"

	"ductor/internal/sim/telegram"
)

const (
	warmTurns = 150
	coldTurns = 40
	// turnRest lets a turn end behind the scenes before the next message: a message that has to queue says
	// nothing about an idle ductor.
	turnRest = 25 * time.Millisecond
)

// latencyFigures are about the way of one message, with budgets that do not hold it up.
func latencyFigures(ctx context.Context, b *bench) ([]figure, error) {
	warm, line, err := warmLatency(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("warm: %w", err)
	}
	cold, err := coldLatency(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("cold: %w", err)
	}
	return []figure{
		warm.within("update delivered to first text, warm", 3*time.Millisecond),
		cold.within("the same, cold (spawn of the agent included)", 8*time.Millisecond),
		line.within("agent writes a line to API call, warm", 400*time.Microsecond),
	}, nil
}

func warmLatency(ctx context.Context, b *bench) (warm, line samples, err error) {
	s, err := b.newSite(siteOptions{name: "warm", rates: noRates, stamps: true})
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, nil, err
	}
	var arrived []time.Time
	for i := range warmTurns + 1 { // the first starts the agent
		first, took, err := s.firstText(ctx, s.private(1), i+1)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			warm, arrived = append(warm, took), append(arrived, first.At)
		}
	}
	written, err := s.written(1)
	if err != nil {
		return nil, nil, err
	}
	if len(written) != len(arrived) {
		return nil, nil, fmt.Errorf("%d deltas were written and %d answers arrived", len(written), len(arrived))
	}
	for i := range arrived {
		line = append(line, arrived[i].Sub(written[i]))
	}
	return warm, line, nil
}

func coldLatency(ctx context.Context, b *bench) (cold samples, err error) {
	s, err := b.newSite(siteOptions{name: "cold", rates: noRates, people: coldTurns})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	for i := range coldTurns {
		_, took, err := s.firstText(ctx, s.private(i+1), 1)
		if err != nil {
			return nil, err
		}
		cold = append(cold, took)
	}
	return cold, nil
}

// firstText asks in a chat that is to show its n-th answer, and returns the call by which it began and how
// long that took.
func (s *site) firstText(ctx context.Context, chat *telegram.Chat, n int) (telegram.Call, time.Duration, error) {
	before := len(s.srv.Calls(sendsIn(chat)...))
	sent := time.Now()
	chat.Person().Send(chat, `[[text "Hello."]]`)
	if err := s.awaitAnswers(ctx, chat, n); err != nil {
		return telegram.Call{}, 0, err
	}
	calls, err := s.srv.AwaitCalls(ctx, before+1, sendsIn(chat)...) // a call is noted a moment after it is seen
	if err != nil {
		return telegram.Call{}, 0, err
	}
	first := calls[before]
	return first, first.Done.Sub(sent), pauseFor(ctx, turnRest)
}

func sendsIn(chat *telegram.Chat) []telegram.CallFilter {
	return []telegram.CallFilter{telegram.InChat(chat.ID()), telegram.Methods("sendMessage")}
}

func (s *site) awaitAnswers(ctx context.Context, chat *telegram.Chat, n int) error {
	return s.whileAlive(ctx, "answer", func(ctx context.Context) error {
		_, err := chat.Await(ctx, func(v telegram.View) bool { return answers(v) >= n })
		return err
	})
}
