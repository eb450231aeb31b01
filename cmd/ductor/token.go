package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ductor/internal/config"
)

// tokenPipeVariable names the descriptor from which a ductor that started itself anew reads the bot token.
const tokenPipeVariable = "DUCTOR_TOKEN_PIPE"

// maxToken bounds what goes into the pipe: no pipe holds less.
const maxToken = 4096

// ownEnvironment is that of this process. The bot token may be set in it, but must not stay there: /proc/PID/environ shows
// to every agent of this user what a process was started with, whatever it unsets. So a ductor that finds the token there
// starts itself anew without it, and the token goes through a pipe.
func ownEnvironment() (config.Environment, error) {
	if token := os.Getenv(config.TokenVariable); token != "" {
		return config.Environment{}, fmt.Errorf("start anew without the token in the environment: %w", startAnew(token))
	}
	fd, ok := os.LookupEnv(tokenPipeVariable)
	if !ok {
		return config.OSEnvironment(), nil
	}
	token, err := readToken(fd)
	if err != nil {
		return config.Environment{}, fmt.Errorf("read the token: %w", err)
	}
	return config.Environment{Getenv: func(name string) string {
		if name == config.TokenVariable {
			return token
		}
		return os.Getenv(name)
	}}, nil
}

// startAnew replaces this process by the same program, with the same arguments. It returns only if it cannot.
func startAnew(token string) error {
	if len(token) > maxToken {
		return errors.New(config.TokenVariable + " is too long for a token")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var ends [2]int
	if err := syscall.Pipe2(ends[:], 0); err != nil {
		return err
	}
	if _, err := syscall.Write(ends[1], []byte(token)); err != nil {
		return err
	}
	if err := syscall.Close(ends[1]); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, config.TokenVariable+"=") || strings.HasPrefix(entry, tokenPipeVariable+"=")
	})
	return syscall.Exec(program, os.Args, append(env, tokenPipeVariable+"="+strconv.Itoa(ends[0])))
}

func readToken(fd string) (string, error) {
	if err := os.Unsetenv(tokenPipeVariable); err != nil {
		return "", err
	}
	n, err := strconv.Atoi(fd)
	if err != nil {
		return "", err
	}
	pipe := os.NewFile(uintptr(n), "token")
	if pipe == nil {
		return "", fmt.Errorf("%s is no descriptor", fd)
	}
	token, err := io.ReadAll(io.LimitReader(pipe, maxToken))
	return string(token), errors.Join(err, pipe.Close())
}
