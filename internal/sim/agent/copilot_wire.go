package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// copilotVersion is the version of Copilot whose protocol was recorded.
const copilotVersion = "1.0.102"

// copilotFolder is the directory with all sessions. In Copilot, sessions do not belong to a working directory.
const copilotFolder = "copilot"

// copilotEvent returns an event of a session. An event has the same form in the output of a single run and in the SDK's
// protocol.
func copilotEvent(kind string, data json.RawMessage, ephemeral bool) json.RawMessage {
	if ephemeral {
		return obj("type", kind, "data", data, "ephemeral", true, "id", newUUID(), "timestamp", copilotNow(),
			"parentId", nil)
	}
	return obj("type", kind, "data", data, "id", newUUID(), "timestamp", copilotNow(), "parentId", nil)
}

func copilotNow() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// frame puts the header of the SDK's protocol before a message.
func frame(body []byte) []byte {
	return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

// readFrames returns a channel that receives messages until the input ends or is invalid.
func (p *process) readFrames() <-chan []byte {
	out := make(chan []byte)
	go func() {
		defer close(out)
		in := bufio.NewReader(p.stdin)
		for {
			body, err := readFrame(in)
			if err != nil {
				return
			}
			select {
			case out <- body:
			case <-p.life.Done():
				return
			}
		}
	}()
	return out
}

func readFrame(in *bufio.Reader) ([]byte, error) {
	length := -1
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(n); err != nil {
				return nil, fmt.Errorf("read header: %w", err)
			}
		}
	}
	if length < 0 || length > 64<<20 {
		return nil, fmt.Errorf("a message of %d bytes", length)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(in, body)
	return body, err
}
