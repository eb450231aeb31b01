package main

import (
	"context"
	"fmt"
	"time"
)

// startTogether measures how long new chats wait for their first text if all of them send a prompt at the same time.
// The answers take so long that all turns run at the same time.
func startTogether(ctx context.Context, s *setup) ([]float64, error) {
	first, err := s.together(ctx, s.sizes.chats, new(words),
		fmt.Sprintf(` [[sleep %dms]]`, s.sizes.busy.Milliseconds()))
	if err != nil {
		return nil, err
	}
	return []float64{first.median(), first.max()}, nil
}

// together sends a prompt in n chats at once, and waits until each chat shows the first text of its answer. It appends
// the directives in more to each prompt. It returns how long each chat waited.
func (s *setup) together(ctx context.Context, n int, word *words, more string) (first samples, err error) {
	var all []*expected
	var sent []time.Time
	for i := range n {
		chat, w := s.chat(i+1), word.next()
		all = append(all, s.expect("the first text", chat, shows(w)))
		sent = append(sent, time.Now())
		chat.Person().Send(chat, fmt.Sprintf("[[text %q]]", w)+more)
	}
	for i, e := range all {
		call, err := s.await(ctx, e)
		if err != nil {
			return nil, err
		}
		first = append(first, call.Done.Sub(sent[i]))
	}
	return first, nil
}

// streamTogether measures the cost of answers that grow in many chats at once. The agents of these chats are already
// running.
func streamTogether(ctx context.Context, s *setup) ([]float64, error) {
	return s.stream(ctx, s.sizes.chats)
}

// streamOfMany is like streamTogether, but with many more chats. The cost should grow linearly with the number of
// chats.
func streamOfMany(ctx context.Context, s *setup) ([]float64, error) {
	values, err := s.stream(ctx, s.sizes.crowd)
	if err != nil {
		return nil, err
	}
	return values[:2], nil
}

// stream measures answers that grow in a number of chats at once. It returns the longest wait for a first text, the CPU
// time of all processes together, the CPU time of the bot alone, and the memory.
func (s *setup) stream(ctx context.Context, chats int) ([]float64, error) {
	var word words
	p := pacer{every: s.sizes.pace}
	for i := range chats {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		if _, err := s.turn(ctx, s.chat(i+1), word.next()); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, s.sizes.refill); err != nil {
		return nil, err
	}
	before, err := s.used()
	if err != nil {
		return nil, err
	}
	var ended []*expected
	for i := range chats {
		ended = append(ended, s.expect("the end of the answer", s.chat(i+1), s.ends("")))
	}
	const every = 25 * time.Millisecond
	first, err := s.together(ctx, chats, &word,
		fmt.Sprintf(" [[text n=%d size=20 delay=%dms]]", s.sizes.stream, every.Milliseconds()))
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, time.Duration(s.sizes.stream)*every/2); err != nil {
		return nil, err
	}
	pids, err := s.processes()
	if err != nil {
		return nil, err
	}
	pss, _, err := memory(pids...)
	if err != nil {
		return nil, err
	}
	for _, e := range ended {
		if _, err := s.await(ctx, e); err != nil {
			return nil, err
		}
	}
	after, err := s.used()
	if err != nil {
		return nil, err
	}
	bot := s.cmd.Process.Pid
	return []float64{first.max(), ms(after.since(before)), ms(after[bot] - before[bot]), pss}, nil
}

type usage map[int]time.Duration

// since returns the CPU time that the processes have used since the earlier measurement. It ignores processes that have
// ended.
func (u usage) since(before usage) (sum time.Duration) {
	for pid, used := range u {
		sum += used - before[pid]
	}
	return sum
}

func (s *setup) used() (usage, error) {
	pids, err := s.processes()
	if err != nil {
		return nil, err
	}
	u := usage{}
	for _, pid := range pids {
		if u[pid], err = cpu(pid); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// idleMemory measures the memory of a bot that has not received a message.
func idleMemory(ctx context.Context, s *setup) ([]float64, error) {
	if err := pause(ctx, s.sizes.idle); err != nil {
		return nil, err
	}
	pids, err := s.processes()
	if err != nil {
		return nil, err
	}
	pss, anonymous, err := memory(pids...)
	return []float64{pss, anonymous}, err
}
