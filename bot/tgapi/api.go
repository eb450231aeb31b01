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

// API calls the Bot API methods that send nothing to a chat: polling, getMe, the menu, files. ductor has its own
// client for them, because go-telegram/bot cannot call getUpdates separately.
//
// The errors contain neither the token nor any URL, because every URL of the Bot API contains the token.
type API struct {
	base   string // without a trailing slash
	token  string
	files  string // directory where a server with --local stores files; empty for any other server
	client *http.Client
}

// KeepsFiles makes Fetch open files below dir instead of requesting them from the server. Call it before other
// methods.
func (a *API) KeepsFiles(dir string) { a.files = dir }

// AnswerError is an error returned by the Bot API.
type AnswerError struct {
	Method      string
	Code        int // the HTTP status if the response is not from the Bot API
	Description string
	RetryAfter  time.Duration
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Description)
}

// bodyLimit limits a response, in bytes. 100 updates of maximum size are much smaller.
const bodyLimit = 32 << 20

// Call sends params as JSON and decodes the result into result, which may be nil.
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

// decodeAnswer decodes the result of a response into result, which is a pointer or nil.
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

// Local reports whether Fetch opens files instead of requesting them.
func (a *API) Local() bool { return a != nil && a.files != "" }

// Fetch opens the content of a file with the path that getFile returned. The caller closes it.
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

// open opens a file that the server stores below files. It rejects a path that does not exist, or leaves the
// directory through a link. The server may use another path for the directory, for example in a container. So open
// uses only the part of the path that starts with the token.
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
	// Do not block: a pipe may have no writer.
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

// WithoutURL removes the address from an error of net/http, because the address contains the token.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// NewAPI returns an API. Its HTTP client has no timeout, because a long poll may take a minute and every call has a
// deadline in its context. The client does not follow redirects, because their errors would contain the address.
func NewAPI(base, token string, transport http.RoundTripper) *API {
	return &API{base: strings.TrimRight(base, "/"), token: token, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// TokenRefused reports whether err means that Telegram does not know the token.
func TokenRefused(err error) bool {
	var no *AnswerError
	return errors.As(err, &no) && (no.Code == http.StatusUnauthorized || no.Code == http.StatusNotFound)
}
