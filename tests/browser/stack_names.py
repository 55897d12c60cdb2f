"""A name that does harm if it is not treated as text."""

HOSTILE = "</title></text><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
