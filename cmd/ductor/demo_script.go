package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
)

// script reads the actions of the user line by line from a pipe. After each line it waits until the chat stands
// still, and prints what is new in it.
func script(ctx context.Context, chat *telegram.Chat, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	printed := map[telegram.MessageID]string{}
	for lines.Scan() {
		fmt.Fprintf(out, "\nyou> %s\n", lines.Text())
		if err := act(ctx, chat, lines.Text()); err != nil {
			fmt.Fprintln(out, err)
		}
		if err := settle(ctx, chat); err != nil {
			return err
		}
		for _, m := range chat.View().FromBot() {
			if text := plain(m); printed[m.ID] != text {
				printed[m.ID] = text
				fmt.Fprintf(out, "\nductor> %s\n", strings.ReplaceAll(text, "\n", "\n        "))
			}
		}
	}
	return lines.Err()
}

// act does what a line says: press a button ("#2"), or send the line.
func act(ctx context.Context, chat *telegram.Chat, line string) error {
	number, isPress := strings.CutPrefix(strings.TrimSpace(line), "#")
	n, err := strconv.Atoi(number)
	if !isPress || err != nil {
		if strings.TrimSpace(line) != "" {
			chat.Person().Send(chat, line)
		}
		return nil
	}
	m, buttons := pressable(chat.View())
	if n < 1 || n > len(buttons) {
		return errors.New("there is no such button")
	}
	answer, err := chat.Person().Press(ctx, m, buttons[n-1].Data)
	if err != nil {
		return err
	}
	if answer.Text != "" {
		return errors.New("(" + answer.Text + ")")
	}
	return nil
}

// pressable gives the newest message that has buttons.
func pressable(v telegram.View) (telegram.Message, []telegram.Button) {
	messages := v.FromBot()
	for i := len(messages) - 1; i >= 0; i-- {
		var buttons []telegram.Button
		for _, row := range messages[i].Keyboard {
			buttons = append(buttons, row...)
		}
		if len(buttons) > 0 {
			return messages[i], buttons
		}
	}
	return telegram.Message{}, nil
}

// settle waits until the chat has not changed for a while.
func settle(ctx context.Context, chat *telegram.Chat) error {
	for {
		before := fingerprint(chat.View())
		wait, cancel := context.WithTimeout(ctx, stillness)
		_, err := chat.Await(wait, func(v telegram.View) bool { return fingerprint(v) != before })
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && time.Since(chat.View().Action.At) > 2*stillness {
			return nil
		}
	}
}

// fingerprint changes with whatever the chat shows.
func fingerprint(v telegram.View) string { return v.Transcript() }

// plain is a message without colours, its buttons numbered.
func plain(m telegram.Message) string {
	text := m.Text
	n := 0
	for _, row := range m.Keyboard {
		for _, b := range row {
			n++
			text += fmt.Sprintf("\n  #%d [%s]", n, b.Text)
		}
	}
	return text
}
