package rooted

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Verb is the first command-line argument of a program in a container or on another machine, and means that the program
// should call Main. The other arguments are passed to Main: an action, a directory, and a path below this directory.
// GetAction, PutAction and RealAction need one more argument, a number of bytes.
const Verb = "files"

// The actions of Main. The last argument of three of them is a number of bytes; see Verb.
//   - GetAction prints a file. The number of bytes is the maximum size of the file.
//   - ListAction lists a directory.
//   - PutAction writes standard input to a file. The number of bytes is the size of standard input.
//   - RealAction reads a JSON list of paths from standard input, and prints the result of RealPaths as JSON. The number
//     of bytes is the size of standard input. RealAction ignores the arguments for the directory and the path.
const (
	GetAction  = "get"
	ListAction = "list"
	PutAction  = "put"
	RealAction = "real"
)

// Answer is the first line of Main's output, in JSON. It is followed by a zero byte and by Size bytes of content. The
// zero byte separates the content from messages that a container engine may add.
type Answer struct {
	Error   *Error  `json:"error,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
	Size    int     `json:"size"`
}

// Main runs the action in args, prints an Answer and the content, and returns the exit code.
func Main(args []string, in io.Reader, out io.Writer) int {
	answer, content, err := runAction(args, in)
	if err != nil {
		answer.Error = toError(err)
	}
	answer.Size = len(content)
	to := bufio.NewWriter(out)
	if json.NewEncoder(to).Encode(answer) != nil {
		return 1
	}
	_ = to.WriteByte(0) // a write error is also returned by Flush below
	_, _ = to.Write(content)
	if to.Flush() != nil || err != nil {
		return 1
	}
	return 0
}

func runAction(args []string, in io.Reader) (a Answer, content []byte, err error) {
	if len(args) == 3 && args[0] == ListAction {
		a.Entries, err = List(args[1], args[2])
		return a, nil, err
	}
	if len(args) != 4 {
		return a, nil, errors.New("no action, directory, path and size were given")
	}
	size, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return a, nil, fmt.Errorf("read a size: %w", err)
	}
	switch args[0] {
	case GetAction:
		content, err = Read(args[1], args[2], size)
		return a, content, err
	case PutAction:
		taken, err := readExactly(in, size)
		if err == nil {
			err = Write(args[1], args[2], taken)
		}
		return a, nil, err
	case RealAction:
		var paths []string
		taken, err := readExactly(in, size)
		if err == nil {
			err = json.Unmarshal(taken, &paths)
		}
		if err == nil {
			content, err = json.Marshal(RealPaths(paths))
		}
		return a, content, err
	}
	return a, nil, fmt.Errorf("there is no action %q", args[0])
}

func readExactly(in io.Reader, size int64) ([]byte, error) {
	taken, err := io.ReadAll(io.LimitReader(in, size))
	if err == nil && int64(len(taken)) != size {
		err = io.ErrUnexpectedEOF
	}
	return taken, err
}

// ErrAnswer means that the input of ReadAnswer is not output of Main, or is too long.
var ErrAnswer = errors.New("no answer about files")

// ReadAnswer parses the output of Main. It returns ErrAnswer for any other input, and for content of more than limit
// bytes.
func ReadAnswer(from io.Reader, limit int64) (a Answer, content []byte, err error) {
	r := bufio.NewReader(io.LimitReader(from, limit+maxAnswerLine))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return a, nil, fmt.Errorf("read an answer: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil || a.Size < 0 || int64(a.Size) > limit {
		return a, nil, fmt.Errorf("%w: %q", ErrAnswer, line[:min(len(line), 300)])
	}
	content = make([]byte, 1+a.Size)
	if _, err := io.ReadFull(r, content); err != nil {
		return a, nil, fmt.Errorf("read a file: %w", err)
	}
	return a, content[1:], nil
}

// maxAnswerLine limits the line with the Answer, in bytes.
const maxAnswerLine = 1 << 20
