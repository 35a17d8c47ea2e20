"""The addresses that answer, a file for each part of the page; `app` finds each file's `router`.

An address is a command's words: `separatrix map spike softmax,linear a1=0.5:1.5:64 --of margin` is
`/api/v1/map/spike/softmax,linear?a1=0.5:1.5:64&--of=margin`.
"""
