module interop

go 1.26.0

require (
	github.com/cloudflare/circl v1.6.5
	golang.org/x/mod v0.42.0
)

require golang.org/x/sys v0.47.0 // indirect
