package cli

// HomeSeed is something that a session finds in a home of its own.
type HomeSeed struct {
	// From is the owner's file, absolute. Empty: there is none, and Pick makes the content.
	From string
	// To is where it is in the home: a path with slashes, below it.
	To string
	// Link puts a link to From there, which may be a directory, in place of a copy. It is for log-ins that an agent
	// renews: of a copy that is renewed, the owner's is worthless from then on. A link that an agent replaced by a
	// file is put back; if the file is newer than the owner's, the owner gets its content before.
	Link bool
	// Pick says what of the owner's content is copied, or what is put there where the owner has nothing; nil copies it
	// as it is. An empty result is no file.
	Pick func(owner []byte) ([]byte, error)
}
