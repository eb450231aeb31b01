// Command together runs several commands at the same time. It prints their output line by line, so that lines of
// different commands do not mix. It exits with 1 if a command fails. An interrupt ends all commands.
//
//	together COMMAND [ARG ...] [-- COMMAND [ARG ...]] ...
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, split(os.Args[1:]), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "together:", err)
		os.Exit(1)
	}
}

func split(args []string) (commands [][]string) {
	for len(args) > 0 {
		i := slices.Index(args, "--")
		if i < 0 {
			i = len(args)
		}
		if i > 0 {
			commands = append(commands, args[:i])
		}
		args = args[min(i+1, len(args)):]
	}
	return commands
}

func run(ctx context.Context, commands [][]string, out io.Writer) error {
	var work sync.WaitGroup
	var printing sync.Mutex
	errs := make([]error, len(commands))
	for i, argv := range commands {
		work.Go(func() { errs[i] = one(ctx, argv, &printing, out) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// grace is how long a command may take to end after the signal that ends it.
const grace = 10 * time.Second

func one(ctx context.Context, argv []string, printing *sync.Mutex, out io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	cmd.Stderr = os.Stderr
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		printing.Lock()
		_, failed := out.Write(line)
		printing.Unlock()
		if err != nil || failed != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}
