package tgapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// API makes requests that send nothing to a chat: polling, getMe, the menu of commands, and files. It exists because
// the library go-telegram/bot, which Client uses, cannot poll on demand.
//
// Its errors never contain a URL, because each URL of the Bot API contains the bot token.
type API struct {
	base   string // without a trailing slash
	token  string
	files  string // directory with the files of a self-hosted server with --local; empty for other servers
	client *http.Client
}

// KeepsFiles sets the directory in which a self-hosted Bot API server with --local stores files. Fetch then opens files
// in this directory instead of downloading them. Call KeepsFiles before any other method.
func (a *API) KeepsFiles(dir string) { a.files = dir }

// AnswerError is an error that the Bot API returned.
type AnswerError struct {
	Method      string
	Code        int // error code of the Bot API, or the HTTP status if there is no error code
	Description string
	RetryAfter  time.Duration
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Description)
}

// bodyLimit is the maximum size of a response in bytes. It is much larger than 100 large updates.
const bodyLimit = 32 << 20

// Call makes a request. It sends params as JSON. Unless result is nil, Call decodes the result of the method into
// *result.
func (a *API) Call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+a.token+"/"+method,
		bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: the API base is not a valid URL", method)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", method, WithoutURL(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	if err != nil {
		return fmt.Errorf("%s: read answer: %w", method, WithoutURL(err))
	}
	if len(data) > bodyLimit {
		return fmt.Errorf("%s: answer of more than %d bytes", method, bodyLimit)
	}
	return decodeAnswer(method, resp.StatusCode, data, result)
}

// decodeAnswer parses a response. Unless result is nil, it decodes the result of the method into *result.
func decodeAnswer(method string, status int, data []byte, result any) error {
	answer := struct {
		OK          bool   `json:"ok"`
		Result      any    `json:"result"`
		Code        int    `json:"error_code"`
		Description string `json:"description"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}{Result: result}
	err := json.Unmarshal(data, &answer)
	if another := new(json.UnmarshalTypeError); errors.As(err, &another) && answer.OK {
		return fmt.Errorf("%s: the result is not what the API promises", method)
	}
	if err != nil {
		if status != http.StatusOK {
			return &AnswerError{Method: method, Code: status, Description: http.StatusText(status)}
		}
		return fmt.Errorf("%s: the answer is not JSON", method)
	}
	if !answer.OK {
		if answer.Code == 0 {
			answer.Code = status
		}
		return &AnswerError{
			Method: method, Code: answer.Code, Description: answer.Description,
			RetryAfter: time.Duration(answer.Parameters.RetryAfter) * time.Second,
		}
	}
	return nil
}

// Local reports whether Fetch opens files on this machine; see KeepsFiles.
func (a *API) Local() bool { return a != nil && a.files != "" }

// Fetch returns the content of a file. path is the path that the Bot API's method getFile returned. The caller must
// close the file.
func (a *API) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	if a.Local() && filepath.IsAbs(path) {
		return a.open(path)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/file/bot"+a.token+"/"+escapePath(path), nil)
	if err != nil {
		return nil, errors.New("fetch file: the path is not valid in a URL")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch file: %w", WithoutURL(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		why := http.StatusText(resp.StatusCode)
		if filepath.IsAbs(path) {
			why += "; the server runs with --local: set telegram.api_files"
		}
		return nil, &AnswerError{Method: "fetch file", Code: resp.StatusCode, Description: why}
	}
	return resp.Body, nil
}

// open opens a file in the directory of a self-hosted Bot API server. It rejects links that lead out of the directory.
// In a container, the server may know the directory under another path. In this case, open uses the part of the path
// that starts with the bot token.
func (a *API) open(path string) (io.ReadCloser, error) {
	refused := func(why string) error {
		return &AnswerError{Method: "open file", Code: http.StatusNotFound, Description: why}
	}
	below, err := filepath.Rel(a.files, path)
	if err != nil || !filepath.IsLocal(below) {
		_, rest, ok := strings.Cut(path, "/"+a.token+"/")
		if !ok {
			return nil, refused("the server keeps it outside of telegram.api_files")
		}
		below = filepath.Join(a.token, rest)
	}
	root, err := os.OpenRoot(a.files)
	if err != nil {
		return nil, refused("telegram.api_files cannot be opened")
	}
	defer root.Close()
	// Without O_NONBLOCK, opening a named pipe would block.
	file, err := root.OpenFile(below, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refused("it cannot be opened below telegram.api_files")
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(refused("it is no regular file"), file.Close())
	}
	return file, nil
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// WithoutURL removes the URL from an error of net/http, because the URL contains the bot token.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// NewAPI returns an API. Its HTTP client has no timeout: long polls take up to a minute, and each request has a
// deadline in its context. It does not follow redirects, because the error of a redirect would contain the URL.
func NewAPI(base, token string, transport http.RoundTripper) *API {
	return &API{base: strings.TrimRight(base, "/"), token: token, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// TokenRefused reports whether err means that Telegram rejected the bot token.
func TokenRefused(err error) bool {
	var no *AnswerError
	return errors.As(err, &no) && (no.Code == http.StatusUnauthorized || no.Code == http.StatusNotFound)
}
