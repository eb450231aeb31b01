package main

import (
	"context"
	"fmt"
	"time"

	"ductor/internal/sim/telegram"
)

type turn struct {
	first time.Duration // time from the message until the chat shows the first text of the answer
	call  time.Time     // time at which Telegram received the call that showed the first text
}

// words generates a different word for the answer to each turn. The words have the length of a chunk of the scripted
// agent, so the agent writes a word at once. The words do not end in a digit. The bot token begins with a digit, so
// ductor would hold back a digit at the end until more text shows that the digit does not begin the token.
type words int

func (w *words) next() string {
	*w++
	return fmt.Sprintf("word%03dx", *w)
}

// turn sends a prompt whose answer is the given word. It returns when the chat shows the whole answer.
func (s *setup) turn(ctx context.Context, chat *telegram.Chat, word string) (turn, error) {
	return s.ask(ctx, chat, word, fmt.Sprintf("[[text %q]]", word))
}

// ask sends a prompt whose answer contains the given word. It returns when the chat shows the whole answer.
func (s *setup) ask(ctx context.Context, chat *telegram.Chat, word, prompt string) (turn, error) {
	first := s.expect("the first text", chat, shows(word))
	end := s.expect("the end of the answer", chat, s.ends(word))
	sent := time.Now()
	chat.Person().Send(chat, prompt)
	call, err := s.await(ctx, first)
	if err != nil {
		return turn{}, err
	}
	if _, err := s.await(ctx, end); err != nil {
		return turn{}, err
	}
	return turn{call.Done.Sub(sent), call.At}, nil
}

// pacer waits between the starts of two turns, so that neither ductor's rate limits nor the previous turn slow down a
// turn.
type pacer struct {
	every time.Duration
	next  time.Time
}

func (p *pacer) wait(ctx context.Context) error {
	if err := pause(ctx, time.Until(p.next)); err != nil {
		return err
	}
	p.next = time.Now().Add(p.every)
	return nil
}

// coldTurns measures the first turns of many chats, one after another.
func coldTurns(ctx context.Context, s *setup) ([]float64, error) {
	var first samples
	var word words
	p := pacer{every: s.sizes.pace}
	for i := range s.sizes.fresh {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		t, err := s.turn(ctx, s.chat(i+1), word.next())
		if err != nil {
			return nil, err
		}
		first = append(first, t.first)
	}
	return []float64{first.median()}, nil
}

// warmTurns measures turns in chats whose agents are already running. The turns do not overlap.
func warmTurns(ctx context.Context, s *setup) ([]float64, error) {
	var first samples
	var calls []time.Time
	var word words
	p := pacer{every: s.sizes.pace}
	for round := range s.sizes.turns + 1 {
		for i := range s.sizes.chats {
			if err := p.wait(ctx); err != nil {
				return nil, err
			}
			t, err := s.turn(ctx, s.chat(i+1), word.next())
			if err != nil {
				return nil, err
			}
			if round > 0 {
				first, calls = append(first, t.first), append(calls, t.call)
			}
		}
	}
	wrote, err := s.stamps(wroteText)
	if err != nil {
		return nil, err
	}
	if len(wrote) != len(calls)+s.sizes.chats {
		return nil, fmt.Errorf("the agents wrote %d deltas in %d turns", len(wrote), len(calls)+s.sizes.chats)
	}
	var way samples
	for i, w := range wrote[s.sizes.chats:] {
		way = append(way, calls[i].Sub(w.at))
	}
	return []float64{first.median(), way.median()}, nil
}

// backToBack measures n turns in a new chat. It sends each prompt as soon as the previous answer is complete.
func backToBack(ctx context.Context, s *setup, n int) (first samples, err error) {
	var word words
	for range n {
		t, err := s.turn(ctx, s.chat(1), word.next())
		if err != nil {
			return nil, err
		}
		first = append(first, t.first)
	}
	return first, nil
}

func shortTurns(ctx context.Context, s *setup) ([]float64, error) {
	first, err := backToBack(ctx, s, s.sizes.short)
	if err != nil {
		return nil, err
	}
	return []float64{first.median(), first.max(), first[1:].max()}, nil
}

func manyTurns(ctx context.Context, s *setup) ([]float64, error) {
	first, err := backToBack(ctx, s, s.sizes.many)
	if err != nil {
		return nil, err
	}
	return []float64{first.median(), first.max()}, nil
}
