package simulated

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var interrupt os.Signal = syscall.SIGINT

// shell runs a command. It supports only a small part of a shell: echo with > or >>, sleep, cat, true, false and exit,
// joined by ; or &&. For these commands, it behaves like a real shell.
func (m *machine) shell(ctx context.Context, r *run, dir, command string) (output string, code int) {
	if r.life.Err() != nil { // a program that has ended cannot start a command
		return "", 128 + int(syscall.SIGKILL)
	}
	r.note("command", "%s", command)
	for _, part := range strings.Split(strings.ReplaceAll(command, "&&", ";"), ";") {
		said, result, last := m.command(ctx, r, dir, strings.Fields(part))
		output += said
		if code = result; code != 0 || last {
			break
		}
	}
	return output, code
}

func (m *machine) command(ctx context.Context, r *run, dir string, words []string) (output string, code int,
	exits bool) {
	if len(words) == 0 {
		return "", 0, false
	}
	switch words[0] {
	case "true":
	case "false":
		return "", 1, false
	case "exit":
		if len(words) > 1 {
			code, _ = strconv.Atoi(words[1])
		}
		return "", code, true
	case "sleep":
		return m.sleep(ctx, words)
	case "cat":
		text, err := os.ReadFile(filepath.Join(dir, words[len(words)-1]))
		if err != nil {
			return err.Error() + "\n", 1, false
		}
		return string(text), 0, false
	case "echo":
		return echo(r, dir, words[1:])
	default:
		return words[0] + ": command not found\n", 127, false
	}
	return "", 0, false
}

func (m *machine) sleep(ctx context.Context, words []string) (output string, code int, exits bool) {
	seconds, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		return "sleep: invalid time interval\n", 1, false
	}
	wait := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return "", 0, false
	case <-ctx.Done():
		return "", 128 + int(syscall.SIGKILL), true
	}
}

func echo(r *run, dir string, words []string) (output string, code int, exits bool) {
	for i, w := range words {
		if w != ">" && w != ">>" || i+1 >= len(words) {
			continue
		}
		how := os.O_CREATE | os.O_WRONLY | os.O_APPEND
		if w == ">" {
			how = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		}
		f, err := os.OpenFile(filepath.Join(dir, words[i+1]), how, 0o644)
		if err == nil {
			_, err = f.WriteString(strings.Join(words[:i], " ") + "\n")
			_ = f.Close() // the data is already written
		}
		if err != nil {
			return err.Error() + "\n", 1, false
		}
		r.effect(strings.Join(words[:i], " "))
		return "", 0, false
	}
	return strings.Join(words, " ") + "\n", 0, false
}
