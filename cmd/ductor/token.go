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

// tokenPipeVariable names the environment variable that contains the number of a file descriptor. ductor reads the bot
// token from this descriptor after it has started itself again.
const tokenPipeVariable = "DUCTOR_TOKEN_PIPE"

// maxToken is the maximum length of a token in bytes. A pipe always accepts this many bytes before the first read.
const maxToken = 4096

// ownEnvironment returns the environment of this process without the bot token. If the environment contains the token,
// ductor first starts itself again without the token, and passes the token through a pipe. This is necessary because
// all agents of this user can read the initial environment in /proc/PID/environ, even after Unsetenv.
func ownEnvironment() (config.Environment, error) {
	if token := os.Getenv(config.TokenVariable); token != "" {
		return config.Environment{}, fmt.Errorf("restart without the token in the environment: %w", startAnew(token))
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

// startAnew replaces this process by the same program with the same arguments. It returns only if the replacement
// fails.
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
		return "", fmt.Errorf("%s is not a descriptor", fd)
	}
	token, err := io.ReadAll(io.LimitReader(pipe, maxToken))
	return string(token), errors.Join(err, pipe.Close())
}
